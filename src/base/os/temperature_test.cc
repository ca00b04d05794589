// Which files are sensors of processors, and what of them is believed. The machine is made up.
#include "base/os/temperature.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace headrace {
namespace {

class Temperature : public testing::Test {
 protected:
  Temperature() { std::filesystem::remove_all(root_); }
  ~Temperature() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<double> highest() const { return TemperatureSensors(root_).highest_celsius(); }

  const std::string root_ = testing::TempDir() + "temperature_test_" + std::to_string(::getpid());
};

TEST_F(Temperature, NoFolderNoSensor) {
  EXPECT_EQ(highest(), std::nullopt);
  EXPECT_EQ(TemperatureSensors(root_).num_sensors(), 0U);
}

TEST_F(Temperature, TheHighestOfPackageAndCores) {
  write("hwmon/hwmon3/name", "coretemp\n");
  write("hwmon/hwmon3/temp1_input", "51000\n");
  write("hwmon/hwmon3/temp2_input", "63500\n");
  write("hwmon/hwmon3/temp2_max", "90000\n");
  write("hwmon/hwmon3/temp12_input", "47000\n");
  write("hwmon/hwmon3/temp_input", "99000\n");
  write("hwmon/hwmon3/fan1_input", "99000\n");
  EXPECT_EQ(TemperatureSensors(root_).num_sensors(), 3U);
  EXPECT_DOUBLE_EQ(highest().value(), 63.5);
}

TEST_F(Temperature, OthersAreNoProcessors) {
  write("hwmon/hwmon0/name", "nvme\n");
  write("hwmon/hwmon0/temp1_input", "71000\n");
  write("hwmon/hwmon1/temp1_input", "72000\n");  // without a name
  write("thermal/thermal_zone0/type", "acpitz\n");
  write("thermal/thermal_zone0/temp", "73000\n");
  write("thermal/cooling_device0/type", "x86_pkg_temp\n");
  write("thermal/cooling_device0/temp", "74000\n");
  EXPECT_EQ(highest(), std::nullopt);
  write("thermal/thermal_zone1/type", "x86_pkg_temp\n");
  write("thermal/thermal_zone1/temp", "40000\n");
  EXPECT_DOUBLE_EQ(highest().value(), 40);
  write("thermal/thermal_zone2/type", "cpu-thermal\n");
  write("thermal/thermal_zone2/temp", "41500\n");
  EXPECT_DOUBLE_EQ(highest().value(), 41.5);
}

TEST_F(Temperature, ANumberForFansIsNoneWhereTheDieTells) {
  write("hwmon/hwmon0/name", "k10temp\n");
  write("hwmon/hwmon0/temp1_label", "Tctl\n");
  write("hwmon/hwmon0/temp1_input", "90000\n");
  EXPECT_DOUBLE_EQ(highest().value(), 90);
  write("hwmon/hwmon0/temp3_label", "Tccd1\n");
  write("hwmon/hwmon0/temp3_input", "60000\n");
  EXPECT_DOUBLE_EQ(highest().value(), 90);
  write("hwmon/hwmon0/temp2_label", "Tdie\n");
  write("hwmon/hwmon0/temp2_input", "63000\n");
  EXPECT_DOUBLE_EQ(highest().value(), 63);
}

TEST_F(Temperature, GarbageIsNoTemperature) {
  write("hwmon/hwmon0/name", "coretemp");
  int number = 0;
  for (const char* text : {"", "\n", "hot", "50000 and more", "5e4", "0x10", "50000.0", "151000",
                           "-60001", "99999999999999999999", "+50000", "--1"}) {
    write("hwmon/hwmon0/temp" + std::to_string(++number) + "_input", text);
  }
  write("hwmon/hwmon0/temp90_input", std::string(1 << 20, '5'));
  std::filesystem::create_directories(root_ + "/hwmon/hwmon0/temp91_input");
  // Nobody writes to it: reading must not wait.
  ASSERT_EQ(::mkfifo((root_ + "/hwmon/hwmon0/temp92_input").c_str(), 0600), 0);
  EXPECT_EQ(highest(), std::nullopt);
  write("hwmon/hwmon0/temp95_input", "-5000");
  EXPECT_DOUBLE_EQ(highest().value(), -5);
}

TEST_F(Temperature, IsReadAnewEachTimeAndMayGo) {
  write("hwmon/hwmon0/name", "zenpower\n");
  write("hwmon/hwmon0/temp1_input", "50000\n");
  const TemperatureSensors sensors(root_);
  EXPECT_DOUBLE_EQ(sensors.highest_celsius().value(), 50);
  write("hwmon/hwmon0/temp1_input", "55000\n");
  EXPECT_DOUBLE_EQ(sensors.highest_celsius().value(), 55);
  std::filesystem::remove_all(root_);
  EXPECT_EQ(sensors.highest_celsius(), std::nullopt);
}

TEST_F(Temperature, SoManySensorsAndNoMore) {
  write("hwmon/hwmon0/name", "coretemp\n");
  for (int i = 1; i <= 600; ++i) {
    write("hwmon/hwmon0/temp" + std::to_string(i) + "_input", "30000\n");
  }
  EXPECT_EQ(TemperatureSensors(root_).num_sensors(), 512U);
  EXPECT_DOUBLE_EQ(highest().value(), 30);
}

}  // namespace
}  // namespace headrace
